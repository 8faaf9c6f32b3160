// story EXTENSION DATABASE SCRIPT HOST [THREADS]: runs the script, in THREADS goroutines at once.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/mattn/go-sqlite3"
)

func run(db *sql.Conn, statement string, host string, out *strings.Builder) error {
	parameters := []any{}
	if strings.Contains(statement, ":host") {
		parameters = append(parameters, sql.Named("host", host))
	}
	if !strings.HasPrefix(statement, "SELECT") {
		_, err := db.ExecContext(context.Background(), statement, parameters...)
		return err
	}
	rows, err := db.QueryContext(context.Background(), statement, parameters...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, _ := rows.Columns()
	values := make([]string, len(names))
	pointers := make([]any, len(names))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return err
		}
		fmt.Fprintln(out, strings.Join(values, "|"))
	}
	return rows.Err()
}

func story(database string, script []string, host string, out *strings.Builder) error {
	pool, err := sql.Open("diffuse", database)
	if err != nil {
		return err
	}
	db, err := pool.Conn(context.Background()) // loads the extension
	if err != nil {
		return err
	}
	for _, statement := range script {
		fmt.Fprintln(out, "> "+statement)
		if err := run(db, statement, host, out); err != nil {
			fmt.Fprintln(out, "error:", err)
		}
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := pool.Close(); err != nil {
		return err
	}
	fmt.Fprintln(out, "closed")
	return nil
}

func main() {
	extension, database, host, threads := os.Args[1], os.Args[2], os.Args[4], 1
	sql.Register("diffuse", &sqlite3.SQLiteDriver{Extensions: []string{extension}})
	text, err := os.ReadFile(os.Args[3])
	if err != nil {
		panic(err)
	}
	if len(os.Args) > 5 {
		threads, _ = strconv.Atoi(os.Args[5])
	}
	var wait sync.WaitGroup
	transcripts := make([]strings.Builder, threads)
	for i := range transcripts {
		name := host
		if threads > 1 {
			name = fmt.Sprint(host, " ", i)
		}
		wait.Add(1)
		go func(out *strings.Builder) {
			defer wait.Done()
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			if err := story(database, lines, name, out); err != nil {
				fmt.Fprintln(out, "error:", err)
			}
		}(&transcripts[i])
	}
	wait.Wait()
	for i := range transcripts {
		fmt.Print(transcripts[i].String())
	}
}
