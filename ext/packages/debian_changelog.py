"""Prints debian/changelog with an entry for each version of CHANGELOG.md: debian_changelog.py MAINTAINER. The newest entry has the
time of the commit, and older entries have earlier times.
"""
import email.utils
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
current = (ROOT / "VERSION").read_text().strip()
maintainer = sys.argv[1]
versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
for age, version in enumerate([current, *(v for v in versions if v != current)]):
    when = email.utils.formatdate(int(os.environ["SOURCE_DATE_EPOCH"]) - 86400 * age)
    print(f"diffuse ({version}-1) unstable; urgency=medium\n\n  * Version {version}: see changelog.gz.\n\n -- {maintainer}  {when}\n")
