"""``unbag review`` as people use it: started, killed, started again, exported, learnt from."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from small_tables import run as run_command  # noqa: F401
