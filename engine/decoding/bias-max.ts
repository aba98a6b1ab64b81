/** Largest absolute value of a bias: far above any logit, far below what adding could overflow. */
export const BIAS_MAX = 1e30;
