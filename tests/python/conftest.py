# SPDX-License-Identifier: Apache-2.0
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "adapters/python")]
os.environ.setdefault("OMP_NUM_THREADS", "1")
