"""Telemetry of a server: metrics for Prometheus, and traces for an OpenTelemetry collector."""
