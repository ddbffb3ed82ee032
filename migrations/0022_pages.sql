-- What pages and the registry that we serve ask for by an index: the entries of registries in the order in which they last moved.

CREATE INDEX listing_changed ON listing (changed_s, id);
