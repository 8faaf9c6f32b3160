"""Prints debian/changelog with an entry for each version of CHANGELOG.md. The newest entry has the time of the commit, and older
entries have earlier times. DEBFULLNAME and DEBEMAIL name the person who makes the package. Without them, the maintainer of
debian/control is named.
"""
import email.utils
import os
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
current = (ROOT / "VERSION").read_text().strip()
maintainer = re.search(r"^Maintainer: (.*)$", (HERE / "debian/control").read_text(), re.M).group(1)
if "DEBEMAIL" in os.environ:
    maintainer = f"{os.environ['DEBFULLNAME']} <{os.environ['DEBEMAIL']}>"
versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
for age, version in enumerate([current, *(v for v in versions if v != current)]):
    when = email.utils.formatdate(int(os.environ["SOURCE_DATE_EPOCH"]) - 86400 * age)
    print(f"diffuse ({version}-1) unstable; urgency=medium\n\n  * Version {version}: see changelog.gz.\n\n -- {maintainer}  {when}\n")
