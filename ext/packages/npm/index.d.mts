/** A connection that can load extensions: better-sqlite3, node:sqlite (with allowExtension), bun:sqlite. */
export interface Connection {
  loadExtension(file: string, entrypoint?: string): unknown;
}

/** Returns the path of the extension for this platform. Throws an error if the package for this platform is not installed. */
export declare function getLoadablePath(): string;

/** Loads the extension into a connection. */
export declare function load(db: Connection): void;
