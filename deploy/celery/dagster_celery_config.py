"""Settings of the Celery workers. dagster-celery imports this module from PYTHONPATH."""

import os

broker_url = os.environ["DAGSTER_CELERY_BROKER_URL"]
result_backend = os.environ["DAGSTER_CELERY_BACKEND_URL"]
# A run starts parser processes, which children of a prefork pool cannot. Each worker does one run at a time.
worker_pool = "solo"
# A busy worker reserves no runs that an idle one could take.
worker_disable_prefetch = True
worker_prefetch_multiplier = 1
# Acknowledge a task when its run ends. Otherwise, the task of a worker that is killed before its run starts is lost,
# and the run occupies a slot until it times out. Redis redelivers the task after this many seconds. If the run has
# started, Dagster ignores the redelivered task because `run_monitoring` is on; without it, Dagster would fail the run.
task_acks_late = True
broker_transport_options = {"visibility_timeout": 120}
# Dagster's run monitoring checks this to see whether a run is in progress.
task_track_started = True
broker_connection_retry_on_startup = True
