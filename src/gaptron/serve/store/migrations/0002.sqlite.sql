-- A model's own entries, so that a start need not read those of the others.
create index of_model on log (model, seq);

-- Where a replay begins: each model as it was when features of old decisions were last forgotten.
create table starts (
    model text primary key,
    seq integer not null,
    body blob not null
) strict;
