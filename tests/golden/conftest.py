# A program, not tests: its modules find each other only when it is run.
collect_ignore_glob = ["*.py"]
