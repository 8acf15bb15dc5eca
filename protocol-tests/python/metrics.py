"""Metrics as Prometheus reads them: `metrics.py URL` prints each sample of the text format."""

import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

answer = urllib.request.urlopen(sys.argv[1], timeout=20)
if not answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"):
    sys.exit(f"this is {answer.headers['Content-Type']}")
for family in text_string_to_metric_families(answer.read().decode()):
    if not family.documentation:
        sys.exit(f"{family.name} says nothing of itself")
    for sample in family.samples:
        labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
        print(family.type, sample.name, labels or "-", sample.value)
