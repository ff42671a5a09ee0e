"""File formats, one file each: its reader and its writer."""
