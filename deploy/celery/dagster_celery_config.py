"""Settings of the Celery workers: dagster-celery reads this module, wherever it is on PYTHONPATH."""

import os

broker_url = os.environ["DAGSTER_CELERY_BROKER_URL"]
result_backend = os.environ["DAGSTER_CELERY_BACKEND_URL"]
# A run starts processes that parse, which children of a prefork pool may not do. One run a worker at a time.
worker_pool = "solo"
# A worker that is busy takes no further run from one that is not.
worker_disable_prefetch = True
worker_prefetch_multiplier = 1
# A task is done with once its run has ended: that of a worker which was killed before its run had begun would else be
# gone, and its run would take up a place until it counts as lost. It goes to another worker after so many seconds;
# Dagster ignores it where the run has begun, since `run_monitoring` is on: it would fail the run otherwise.
task_acks_late = True
broker_transport_options = {"visibility_timeout": 120}
# That a run is at work is seen by Dagster's run monitoring.
task_track_started = True
broker_connection_retry_on_startup = True
