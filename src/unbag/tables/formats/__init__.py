"""File formats: one file each, with its reader and its writer."""
