/** Ensembles within each other. */
export const MAX_DEPTH = 8;
