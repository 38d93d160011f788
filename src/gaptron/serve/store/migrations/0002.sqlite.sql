-- A model's own entries, so that a start need not read those of the others.
create index of_model on log (model, seq);
