# story.pl EXTENSION DATABASE SCRIPT HOST
use strict;
use warnings;
use DBI;

my ($extension, $database, $script, $host) = @ARGV;
$| = 1;
my $db = DBI->connect("dbi:SQLite:dbname=$database", '', '', { RaiseError => 1, PrintError => 0 });
$db->sqlite_enable_load_extension(1);
eval { $db->sqlite_load_extension($extension); 1 } or do { print "error: $@"; exit };

open(my $statements, '<', $script) or die $!;
while (my $statement = <$statements>) {
  chomp $statement;
  print "> $statement\n";
  eval {
    my $prepared = $db->prepare($statement);
    $prepared->bind_param(':host', $host) if $statement =~ /:host/;
    $prepared->execute;
    if ($prepared->{NUM_OF_FIELDS}) {
      while (my $row = $prepared->fetchrow_arrayref) { print join('|', @$row), "\n" }
    }
    1;
  } or print "error: $@";
}
$db->disconnect or die;
print "closed\n";
