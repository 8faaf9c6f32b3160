"use strict";

const { existsSync } = require("node:fs");

const SUFFIX = { darwin: "dylib", linux: "so", win32: "dll" };

/* Returns whether this node was linked with musl, not with glibc. The installed packages do not decide this: npm installs the
   package for one of the two C libraries, but yarn and pnpm may install both packages. */
function isMusl() {
  if (process.platform !== "linux") return false;
  const report = process.report && process.report.getReport();
  if (report && report.header && report.header.glibcVersionRuntime) return false;
  return !report || existsSync("/etc/alpine-release") || (report.sharedObjects || []).some((name) => name.includes("ld-musl-"));
}

/** Returns the path of the extension for this platform. */
function getLoadablePath() {
  const name = `sqlite-diffuse-${process.platform}-${process.arch}${isMusl() ? "-musl" : ""}`;
  const suffix = SUFFIX[process.platform];
  try {
    return require.resolve(`${name}/diffuse.${suffix}`);
  } catch {
    throw new Error(
      `sqlite-diffuse: the package ${name} is not installed (install with optional dependencies; if there is no such package, build from source)`,
    );
  }
}

/** Loads the extension into a connection of better-sqlite3, node:sqlite or bun:sqlite. */
function load(db) {
  db.loadExtension(getLoadablePath());
}

module.exports = { getLoadablePath, load };
