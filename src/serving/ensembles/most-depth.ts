/** Ensembles within each other. */
export const MOST_DEPTH = 8;
