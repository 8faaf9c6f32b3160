-- Loads fixtures/star.csv (see fixtures/README.md) into the table star. Run from the top of the
-- repository:  sqlite3 build/star.db < sql/star.sql
.mode csv
.import fixtures/star.csv raw
CREATE TABLE star(
  student_id  INTEGER NOT NULL,  -- the privacy unit: one to four rows each
  school_id   INTEGER NOT NULL,
  grade       TEXT NOT NULL,     -- K, 1, 2, 3
  class_type  TEXT NOT NULL,     -- small, reg, reg+A (regular with an aide)
  school_type TEXT NOT NULL,
  sex         TEXT,
  ethnicity   TEXT,
  lunch       TEXT,              -- F: free lunch
  reading     REAL,              -- score; NULL if the test was not taken
  math        REAL
);
INSERT INTO star
  SELECT student_id, school_id, grade, class_type, school_type, nullif(sex, ''),
         nullif(ethnicity, ''), nullif(lunch, ''), nullif(reading, ''), nullif(math, '')
  FROM raw;
DROP TABLE raw;
CREATE INDEX star_school ON star(school_id, grade);
