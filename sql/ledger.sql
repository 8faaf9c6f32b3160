-- The schema of the privacy ledger, format 1. The ledger is a file beside the database, <database>-ledger.
--
-- These are ordinary tables that any SQLite tool can read. Only diffuse writes them, through a private
-- connection. The file is as confidential as the database, because dp_path holds unpublished points. Rates
-- are zCDP rates: a release of rate L is (a, a L)-RDP for every order a > 1.
--
-- To add a column or a table, write it here and in the statements of ext/ledger that use it. Once a version with this format has
-- been released, a change also raises user_version below and LEDGER_FORMAT (ext/ledger/internal.h). diffuse
-- refuses ledgers of another format.

PRAGMA application_id = 1684432486;  -- the letters 'dfff', which identify the file
PRAGMA user_version = 1;             -- the format

-- One row that says what this ledger protects. dp_init() writes this row, and nothing changes it later.
CREATE TABLE dp_ledger(
  id         TEXT NOT NULL,          -- the same as in the database's dp_ledger_id
  unit       TEXT,                   -- label of the privacy unit, for people ('patient')
  protects   TEXT NOT NULL CHECK (protects IN ('unit', 'row')),
  adjacency  TEXT NOT NULL CHECK (adjacency IN ('add-remove', 'replace')),
  created_at TEXT NOT NULL
);

-- One row per table that dp_protect() or dp_public() has declared. A question cannot read other tables.
CREATE TABLE dp_policy(
  table_name  TEXT NOT NULL PRIMARY KEY COLLATE NOCASE,  -- in the database's main schema
  role        TEXT NOT NULL CHECK (role IN ('protected', 'public')),
  unit_column TEXT,                  -- for a protected table: the column with the id of the unit,
                                     -- or with a key of `parent`; NULL: each row is a unit
  parent      TEXT COLLATE NOCASE,   -- the protected table to whose key unit_column refers; NULL: none
  definition  TEXT,                  -- for a public table: its columns, as the text of a CREATE TABLE
  mark        TEXT,                  -- for a public table: the name of the trigger that marks it in the database
  created_at  TEXT NOT NULL,
  -- The wider unit, such as the household, is declared in the row of one table, which has one row for each
  -- unit (dp_within). The columns are NULL in all other rows.
  wider        TEXT,                 -- label of the wider unit ('household')
  wider_column TEXT,                 -- the column with its id
  factor       REAL,                 -- it counts no more than this many units; a multiple of 1/64
  wider_at     TEXT
);

-- One row per tier (audience), which cannot change later. Inner tiers have larger rates than outer tiers.
-- dp_drop_tier() deletes a tier that was never charged.
CREATE TABLE dp_tier(
  name         TEXT NOT NULL PRIMARY KEY,
  rate         REAL NOT NULL,        -- largest rate of one release of weight 1 at this tier
  epsilon      REAL NOT NULL,        -- epsilon and delta of the whole budget
  delta        REAL NOT NULL,
  delta_keys   REAL NOT NULL,        -- the part of delta that is for private key selection
  accountant   TEXT NOT NULL CHECK (accountant IN ('rdp', 'gdp', 'pure')),
  filter_order REAL,                 -- rdp: the order at which the total rate is limited
  rate_limit   REAL NOT NULL,        -- the highest total rate (pure: epsilon) that the tier can spend
  pure_limit   REAL,                 -- rdp without a period: the tier also stays within its budget as long as
                                     -- its pure epsilons add up to at most this; NULL: they do not count
  slack_limit  REAL NOT NULL,        -- gdp: the lattice slack (total variation) that is set aside
  period       TEXT CHECK (period IN ('day', 'week', 'month', 'quarter', 'year')),
                                     -- the tier has a new budget in each period; NULL: one budget for ever
  created_at   TEXT NOT NULL
);
CREATE UNIQUE INDEX dp_tier_rate ON dp_tier(rate);

-- One row per release: one noisy vector, drawn once from the data.
CREATE TABLE dp_release(
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT NOT NULL,         -- unique among the releases that are not discarded
  kind        TEXT NOT NULL,         -- 'count', 'sum', 'avg', 'group_sum', 'ou_sum', ...
  mechanism   TEXT NOT NULL,         -- 'gaussian', 'ou', 'laplace', 'exponential', 'permute-and-flip', 'response', 'local', 'iteration' or 'laplace_iteration'
  clip        REAL,                  -- clipping norm of one privacy unit
  lo          REAL,                  -- range of x, for averages, spreads, quantiles and histograms
  hi          REAL,
  grid        REAL,                  -- quantiles: x counts as the nearest lo + k * grid; NULL: no grid
  diagnose    INTEGER,               -- 1: two further coordinates count the units that were clipped and the others
  size        INTEGER,               -- dimension of vectors, number of bins or leaves
  quantiles   TEXT,                  -- the requested quantiles: a number, or a JSON array
  keys        TEXT,                  -- public keys: a JSON array in the order of their texts
                                     -- cross tables: a JSON object with the keys of each attribute
  ways        TEXT,                  -- cross tables: all tables, as a JSON array of arrays of attributes
  multipliers TEXT,                  -- cross tables: what one row adds to its cell of each table, in the same order
  periods     TEXT,                  -- a series: the labels of its periods, 'first/last' or a JSON array
  appended    INTEGER,               -- a series: how many of its periods have been published; NULL: none
  secret      TEXT,                  -- a series: the key with which dp_allowance hides units, in hexadecimal;
                                     -- NULL after the last period. This column and appended are confidential
  unit_type   TEXT,                  -- a series: the affinity and collation of the columns that name units
  model       TEXT,                  -- the public parameters of a model that was trained: a JSON object
  max_groups  INTEGER,               -- private keys: largest number of keys of a unit
  until       REAL,                  -- stop when the half-width of each figure is at most this part of the figure
  least       REAL,                  -- until: or this part of `least`, if the figure is smaller; NULL: 0
  stop        INTEGER,               -- until: the clock at which the walk stopped because it was accurate enough;
                                     -- NULL: it has not stopped, or went on to the end. Confidential for outer tiers
  key_share   REAL,                  -- private keys: the part of delta_keys that each publication takes
  dimension   INTEGER,               -- number of coordinates (a series: of one period); NULL if keys are private
  granularity INTEGER NOT NULL,      -- the lattice is 2^granularity * Z
  shift       INTEGER NOT NULL,      -- contributions are summed on a lattice 2^shift times finer
  sensitivity INTEGER NOT NULL,      -- in lattice steps, under the ledger's adjacency
  weight      REAL NOT NULL,         -- this release costs weight times the rate of a tier
  slack       REAL NOT NULL,         -- total lattice slack of the draws made so far
  centre      REAL NOT NULL,         -- OU: the public point that values shrink towards
  radius      REAL,                  -- OU: public bound on |true answer - centre| (Theorem 8)
  theta       REAL,                  -- OU: theta and rho of the process, if they were given
  rho         REAL,
  options     TEXT NOT NULL,         -- the parameters as JSON, for readers
  sql         TEXT,                  -- the text of the question, which an aggregate in a SELECT stands for, too
  statement   TEXT,                  -- 'dp_merge' if dp_merge() made the release; NULL: not
  tables      TEXT,                  -- the tables that the question read, with their roles at that time:
                                     -- {"visit":"protected","ward":"public"}; NULL: not checked
  fingerprint TEXT NOT NULL,         -- the exact parameters, which a later request for this name must match
  state       TEXT NOT NULL CHECK (state IN ('charged', 'released', 'failed', 'discarded')),
  created_at  TEXT NOT NULL
);
CREATE UNIQUE INDEX dp_release_name ON dp_release(name) WHERE state <> 'discarded';
CREATE INDEX dp_release_sql ON dp_release(sql, kind, clip) WHERE sql IS NOT NULL;
CREATE INDEX dp_release_discarded ON dp_release(name) WHERE state = 'discarded';

-- One row per release and tier at which it was published.
CREATE TABLE dp_publication(
  release_id   INTEGER NOT NULL REFERENCES dp_release(id),
  release      TEXT NOT NULL,
  tier         TEXT NOT NULL REFERENCES dp_tier(name),
  clock        INTEGER NOT NULL,     -- variance of the noise in lattice steps squared; 0 for symbols and drawn quantiles
  rate         REAL NOT NULL,        -- zCDP rate of the noise at this clock, rounded up
  shrink       REAL NOT NULL,        -- sums: value = centre + shrink * (lattice value - centre)
  centre       REAL NOT NULL,
  curve        BLOB,                 -- RDP in addition to the RDP of the rate, as in dp_charge; NULL: none
  delta        REAL NOT NULL,        -- delta of private key selection
  kernel       TEXT,                 -- the public kernel of dp_mix()
  clipped      REAL,                 -- diagnose: noisy number of units whose contribution was clipped
  unclipped    REAL,                 -- diagnose: noisy number of the other units
  unit_stddev  REAL,                 -- diagnose: standard deviation of the noise in each of these two numbers
  cut          REAL,                 -- diagnose: the share of the total that was cut off; NULL: not known
  cut_low      REAL,                 -- diagnose: the 95% interval of this share; NULL: the release has no total
  cut_high     REAL,
  cut_within   REAL,                 -- diagnose: cut_high holds if no unit is more than this times as large as it may be
  wider_clipped   REAL,              -- diagnose: noisy number of wider units (dp_within) that were scaled down
  wider_unclipped REAL,              -- diagnose: noisy number of the other wider units
  threshold    REAL,                 -- private keys: a key with a smaller noisy count is not published
  published_at TEXT NOT NULL,
  PRIMARY KEY (release_id, tier)
);

-- The published numbers. key is '' without groups. component is the index in an array.
CREATE TABLE dp_value(
  release_id INTEGER NOT NULL,
  release    TEXT NOT NULL,
  tier       TEXT NOT NULL,
  key        TEXT NOT NULL,
  component  INTEGER NOT NULL,
  value      REAL NOT NULL,          -- 1 for a symbol, which is stored as the key
  stddev     REAL,                   -- standard deviation of the noise, rounded up; NULL for symbols and drawn quantiles
  low        REAL,                   -- 95% interval of the noise around value; NULL for symbols and drawn quantiles
  high       REAL,
  PRIMARY KEY (release_id, tier, key, component)
);

-- The path of a release: all its points, published or not, with their clocks. There is one point per release
-- and tier. These rows are confidential.
CREATE TABLE dp_point(
  id         INTEGER PRIMARY KEY,
  release_id INTEGER NOT NULL,
  release    TEXT NOT NULL,
  tier       TEXT NOT NULL,
  clock      INTEGER NOT NULL,       -- variance of the noise in lattice steps squared; 0 for symbols and drawn quantiles
  UNIQUE (release_id, tier)
);

-- The coordinates of the points. component is the index of the coordinate among the coordinates of its key.
-- If keys are private, each point also has a row with component -1, because a point may have no keys at all.
-- With the option diagnose, components -3 and -2 of the key '' count the units that were clipped and the
-- others, before them the ladder of their sizes, and before it the wider units, as far as there are any (sums/households.c). A series has the number of a period as the key, '0001' and so on, and the coordinates of all groups
-- as components, with those of diagnose at the end. A median has about 2000 coordinates, so this table is most of the file.
CREATE TABLE dp_coordinate(
  point      INTEGER NOT NULL REFERENCES dp_point(id),
  key        TEXT NOT NULL,          -- the key of a group, or the symbol
  component  INTEGER NOT NULL,
  value      INTEGER NOT NULL,       -- lattice steps; 1 for a symbol; the leaf of a drawn quantile
  PRIMARY KEY (point, key, component)
) WITHOUT ROWID;

-- A series: the exact sums of the periods that have been published, in fine steps. The points of coming
-- periods need them. Confidential; deleted with the last period.
CREATE TABLE dp_exact(
  release_id INTEGER NOT NULL,
  period     TEXT NOT NULL,          -- the label of the period
  key        TEXT NOT NULL,          -- the key of a group, or ''
  component  INTEGER NOT NULL,       -- -3 and -2 of the key '': diagnose, as in dp_coordinate
  value      TEXT NOT NULL,          -- a whole number, which may have more than 64 bits
  PRIMARY KEY (release_id, period, key, component)
) WITHOUT ROWID;

-- A series: what each unit has counted so far. `units` holds 24 bytes for each unit: the first 16 bytes of
-- the SHA-256 of dp_release.secret and of the unit's identity (16 bytes, as in the state of a shard), and a
-- little-endian number of 8 bytes: the norm that the unit has counted, in fine steps; plus 2^62 if the unit
-- has counted anything, and 2^63 if it was clipped. Confidential; deleted with the last period.
CREATE TABLE dp_allowance(
  release_id INTEGER NOT NULL,
  part       INTEGER NOT NULL,
  units      BLOB NOT NULL,
  PRIMARY KEY (release_id, part)
) WITHOUT ROWID;

-- The points together with their coordinates.
CREATE VIEW dp_path AS
  SELECT release_id, release, tier, clock, key, component, value
  FROM dp_point JOIN dp_coordinate ON point = id;

-- The payments of the tiers. The table is append-only. hash is the SHA-256, in hexadecimal, of the lines
--   previous hash ('' for the first row), id, release_id, release, tier, subject, rate of the tier,
--   rate, slack, delta, curve, at, period, grant_name, kind.
-- Each line ends with a newline; NULL is an empty line. Reals are 16 hexadecimal digits of the IEEE 754 double, integers are
-- decimal, and the curve is hexadecimal. The subject says what the charge is for: the ledger's id,
-- protects and adjacency, and the release's fingerprint, granularity, shift and sensitivity, joined by
-- '/'.
CREATE TABLE dp_charge(
  id         INTEGER PRIMARY KEY,
  release_id INTEGER NOT NULL,
  release    TEXT NOT NULL,
  tier       TEXT NOT NULL,
  rate       REAL NOT NULL,          -- the part of the cost that this tier had not yet paid
  curve      BLOB,                   -- RDP in addition to the RDP of the rate; NULL for Gaussian
                                     -- and OU. 115 little-endian doubles: one for each order of dp_rdp,
                                     -- then one for the filter order
  delta      REAL NOT NULL,          -- delta of private key selection
  slack      REAL NOT NULL,          -- lattice slack, for the accountant gdp
  at         TEXT NOT NULL,          -- when the cost arose; an inherited charge has the original time
  period     TEXT,                   -- the first day of the period in which the charge counts, in UTC;
                                     -- NULL: the tier has no periods
  grant_name TEXT,                   -- the grant that pays; NULL: the owner
  kind       TEXT NOT NULL CHECK (kind IN ('charge', 'return')),
                                     -- 'return': a release with `until` stopped early, and gives back what it did
                                     -- not use; rate and slack are not positive
  hash       TEXT NOT NULL
);
CREATE INDEX dp_charge_release ON dp_charge(release_id, tier);

-- Digests of the rows at the end of a transaction. The table is append-only. Each transaction that changes
-- a release, the tiers or the budgets seals the new rows. A digest is the SHA-256, in hexadecimal, of rows.
-- Each row gives the name of its table, followed by every column in the order of this file. Each name and
-- each column is on a line of its own that ends with a newline. A column is written as n for NULL; as i and
-- a decimal number for an integer; as r and 16 hexadecimal digits of the IEEE 754 bits for a real; as t, the
-- length in bytes, a colon and the bytes for a text; and as b in the same way for a blob.
--   release_id > 0: the row of dp_release; the rows of dp_publication, ordered by tier; the rows of
--                   dp_value and dp_path, ordered by tier, key and component; and the rows of dp_exact,
--                   ordered by period, key and component, and of dp_allowance, ordered by part
--   release_id 0:   dp_ledger; dp_tier, ordered by name; dp_policy, ordered by table_name; dp_grant,
--                   ordered by name; and dp_page, ordered by tier
--   release_id -1:  the columns tier, alpha and allowed of dp_order, ordered by tier and alpha
-- hash is the SHA-256 of the lines: previous hash ('' for the first row), id, release_id, digest, books,
-- charge_id, hash of that charge ('' for none), at.
CREATE TABLE dp_seal(
  id         INTEGER PRIMARY KEY,
  release_id INTEGER NOT NULL,
  digest     TEXT NOT NULL,
  books      TEXT NOT NULL,          -- the digest of dp_budget, by tier, and of dp_reserve, by grant and tier
  charge_id  INTEGER NOT NULL,       -- the last charge at that time; 0: none
  at         TEXT NOT NULL,
  hash       TEXT NOT NULL
);
CREATE INDEX dp_seal_release ON dp_seal(release_id);

CREATE TRIGGER dp_charge_no_update BEFORE UPDATE ON dp_charge
BEGIN SELECT raise(ABORT, 'dp_charge is append-only'); END;
CREATE TRIGGER dp_charge_no_delete BEFORE DELETE ON dp_charge
BEGIN SELECT raise(ABORT, 'dp_charge is append-only'); END;
CREATE TRIGGER dp_charge_no_replace BEFORE INSERT ON dp_charge
WHEN EXISTS (SELECT 1 FROM dp_charge WHERE id = new.id)
BEGIN SELECT raise(ABORT, 'dp_charge is append-only'); END;

CREATE TRIGGER dp_seal_no_update BEFORE UPDATE ON dp_seal
BEGIN SELECT raise(ABORT, 'dp_seal is append-only'); END;
CREATE TRIGGER dp_seal_no_delete BEFORE DELETE ON dp_seal
BEGIN SELECT raise(ABORT, 'dp_seal is append-only'); END;
CREATE TRIGGER dp_seal_no_replace BEFORE INSERT ON dp_seal
WHEN EXISTS (SELECT 1 FROM dp_seal WHERE id = new.id)
BEGIN SELECT raise(ABORT, 'dp_seal is append-only'); END;

-- Running totals, updated in the same transaction as the charges. For a tier with periods these are the
-- totals of one period. A reader of this file sees the last period with a charge; the table dp_budget of
-- the extension shows the current period. spent_rate is the total rounded up; the exact total is
-- spent_high + spent_low.
CREATE TABLE dp_budget(
  tier              TEXT NOT NULL PRIMARY KEY REFERENCES dp_tier(name),
  epsilon           REAL NOT NULL,
  delta             REAL NOT NULL,
  spent_epsilon     REAL NOT NULL,   -- at the tier's delta for noise, rounded up
  remaining_epsilon REAL NOT NULL,
  spent_rate        REAL NOT NULL,
  spent_delta       REAL NOT NULL,   -- delta spent on private key selection
  releases          INTEGER NOT NULL,
  releases_left     INTEGER NOT NULL, -- number of releases of weight 1 that all paying tiers can still afford
  spent_high        REAL NOT NULL,
  spent_low         REAL NOT NULL,
  spent_slack       REAL NOT NULL,
  spent_curve       REAL NOT NULL,   -- total of the charges' curves at the filter order
  spent_pure        REAL NOT NULL,   -- total of the charges' epsilons; infinite after Gaussian noise
  period_start      TEXT,            -- first day of the latest period that the tier has reached, which is
                                     -- the period of the totals. NULL: no periods
  period_end        TEXT,            -- first day of the next period; NULL: no periods
  wider_epsilon     REAL             -- the epsilon of the wider unit (dp_within) if the whole budget is spent;
                                     -- NULL: none is declared
);

-- One row per grant: a part of a tier's budget that the owner has set aside for questions of others.
-- Rows never change.
CREATE TABLE dp_grant(
  name       TEXT NOT NULL PRIMARY KEY,  -- the names of its releases are '<name>/...'
  tier       TEXT NOT NULL REFERENCES dp_tier(name),
  share      REAL NOT NULL,          -- the share of the tier's remaining budget that was set aside
  questions  INTEGER,                -- how many questions of weight 1 the share pays for; NULL: the owner gave a share
  diffuse    TEXT,                   -- tiers at which each answer is also published: a JSON array
  pad_ms     INTEGER NOT NULL,       -- an answer returns after 1, 2, 4, 8, ... times as many milliseconds
  seconds    REAL NOT NULL,          -- a question may take as long; then it fails and stays charged
  steps      REAL NOT NULL,          -- steps of SQLite for each row of a unit
  bytes      REAL NOT NULL,          -- memory for the evaluation of one unit
  created_at TEXT NOT NULL
);

-- What the owner chose for the page of a tier: the options of dp_report(), a JSON object.
CREATE TABLE dp_page(
  tier    TEXT UNIQUE REFERENCES dp_tier(name), -- NULL: the owner's page of all tiers
  options TEXT NOT NULL
);

-- The budget that a grant holds at each tier that pays for its answers. A charge with a grant_name counts
-- here and in dp_budget.
CREATE TABLE dp_reserve(
  grant_name     TEXT NOT NULL REFERENCES dp_grant(name),
  tier           TEXT NOT NULL REFERENCES dp_tier(name),
  reserved       REAL NOT NULL,      -- total rate (pure: epsilon), as in dp_tier.rate_limit
  spent          REAL NOT NULL,      -- the spent part of `reserved`, rounded up
  reserved_delta REAL NOT NULL,      -- delta for private key selection
  spent_delta    REAL NOT NULL,
  charges        INTEGER NOT NULL,
  reserved_slack REAL NOT NULL,      -- gdp: lattice slack
  spent_slack    REAL NOT NULL,
  spent_high     REAL NOT NULL,      -- the exact rate is spent_high + spent_low
  spent_low      REAL NOT NULL,
  spent_curve    REAL NOT NULL,      -- total of the charges' curves at the filter order
  PRIMARY KEY (grant_name, tier)
);

-- The orders of RDP. allowed is the RDP that the tier may spend at an order. curve is the total
-- at this order of the curves of the tier's charges.
CREATE TABLE dp_order(
  tier    TEXT NOT NULL REFERENCES dp_tier(name),
  alpha   REAL NOT NULL,
  allowed REAL NOT NULL,             -- negative: this order cannot certify the budget by itself
  curve   REAL NOT NULL,
  PRIMARY KEY (tier, alpha)
);

-- The whole RDP curve of a tier. The factor 1.0000000000000002 rounds the product up.
CREATE VIEW dp_rdp AS
  SELECT tier, alpha,
         CAST(CASE WHEN spent_rate = 0 THEN curve
                   ELSE (alpha * spent_rate + curve) * 1.0000000000000002 END AS REAL) AS spent,
         allowed
  FROM dp_order JOIN dp_budget USING (tier);
