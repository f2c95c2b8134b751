"""What rules share: indexed look-ups, the classes of sync points, grouping by place, and texts."""
