// Story EXTENSION DATABASE SCRIPT HOST [THREADS]: runs the script over JDBC, in THREADS threads at
// once.
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

public class Story {
  static String extension, database;
  static List<String> script;

  static void run(Connection db, String statement, String host, StringBuilder out) {
    try (var prepared = db.prepareStatement(statement)) {
      if (statement.contains(":host")) {
        for (int i = 1; i <= prepared.getParameterMetaData().getParameterCount(); i++) {
          prepared.setString(i, host);
        }
      }
      if (!prepared.execute()) return;
      ResultSet rows = prepared.getResultSet();
      while (rows.next()) {
        for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) {
          out.append(i > 1 ? "|" : "").append(rows.getString(i));
        }
        out.append("\n");
      }
    } catch (SQLException error) {
      out.append("error: " + error.getMessage() + "\n");
    }
  }

  static void story(String host, StringBuilder out) {
    Properties options = new Properties();
    options.setProperty("enable_load_extension", "true");
    try (Connection db = DriverManager.getConnection("jdbc:sqlite:" + database, options)) {
      try (var load = db.prepareStatement("SELECT load_extension(?)")) {
        load.setString(1, extension);
        load.execute();
      }
      for (String statement : script) {
        out.append("> " + statement + "\n");
        run(db, statement, host, out);
      }
    } catch (SQLException error) { // from load_extension or close()
      out.append("error: " + error.getMessage() + "\n");
      return;
    }
    out.append("closed\n");
  }

  public static void main(String[] args) throws Exception {
    extension = args[0];
    database = args[1];
    script = Files.readAllLines(Path.of(args[2]));
    int threads = args.length > 4 ? Integer.parseInt(args[4]) : 1;
    List<Thread> running = new ArrayList<>();
    List<StringBuilder> transcripts = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      String host = threads == 1 ? args[3] : args[3] + " " + i;
      StringBuilder out = new StringBuilder();
      transcripts.add(out);
      running.add(new Thread(() -> story(host, out)));
    }
    for (Thread thread : running) thread.start();
    for (Thread thread : running) thread.join();
    for (StringBuilder out : transcripts) System.out.print(out);
  }
}
