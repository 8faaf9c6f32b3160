<?php // story.php EXTENSION DATABASE SCRIPT HOST; sqlite3.extension_dir must be the directory of EXTENSION
[, $extension, $database, $script, $host] = $argv;
$db = new SQLite3($database);
$db->enableExceptions(true);
try {
    $db->loadExtension(basename($extension) . '.so');
} catch (Exception $error) {
    exit("error: {$error->getMessage()}\n");
}
foreach (file($script, FILE_IGNORE_NEW_LINES) as $statement) {
    print "> $statement\n";
    try {
        $prepared = $db->prepare($statement);
        if (str_contains($statement, ':host')) {
            $prepared->bindValue(':host', $host);
        }
        $result = $prepared->execute(); // runs a SELECT to its first row, and fetchArray() runs it again
        while ($result->numColumns() && $row = $result->fetchArray(SQLITE3_NUM)) {
            print implode('|', $row) . "\n";
        }
    } catch (Exception $error) {
        print "error: {$error->getMessage()}\n";
    }
}
unset($prepared, $result);
print $db->close() ? "closed\n" : "error: {$db->lastErrorMsg()}\n";
