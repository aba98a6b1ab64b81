/** Greatest value of an int32: of a token id, a length, a position, and of what the engine counts. */
export const MAX_INT32 = 2 ** 31 - 1;

/** Longest time of a timer, in ms: Node.js counts it in an int32, and ends a longer one at once. */
export const MAX_TIMER_MS = MAX_INT32;
