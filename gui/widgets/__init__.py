"""Small widgets that several panels use; they know no Session."""
