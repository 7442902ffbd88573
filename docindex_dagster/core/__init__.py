"""What everything stands on: settings, files, tables, locks, errors. It knows no other room."""
