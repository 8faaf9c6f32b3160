// story.js DRIVER EXTENSION DATABASE SCRIPT HOST; DRIVER is node:sqlite or the path of a
// better-sqlite3 package.
const [driver, extension, database, script, host] = process.argv.slice(2);

function connect() {
  if (driver !== "node:sqlite") return new (require(driver))(database);
  const { DatabaseSync } = require(driver);
  return new DatabaseSync(database, { allowExtension: true });
}

function run(db, statement) {
  const prepared = db.prepare(statement);
  const parameters = statement.includes(":host") ? [{ host }] : [];
  if (!/^SELECT/.test(statement)) return prepared.run(...parameters);
  for (const row of prepared.all(...parameters)) console.log(Object.values(row).join("|"));
}

const db = connect();
try {
  db.loadExtension(extension);
} catch (error) {
  console.log(`error: ${error.message}`);
  process.exit();
}
for (const statement of require("fs").readFileSync(script, "utf8").trim().split("\n")) {
  console.log(`> ${statement}`);
  try {
    run(db, statement);
  } catch (error) {
    console.log(`error: ${error.message}`);
  }
}
db.close();
console.log("closed");
