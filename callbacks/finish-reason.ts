/** Values of the output tensor finish_reasons [1, beamWidth]. */
export const FINISH_NOT_FINISHED = 0;
/** end_id was drawn; it is not part of the output. */
export const FINISH_END_ID = 1;
/** The output ends with one of the stop words. */
export const FINISH_STOP_WORDS = 2;
export const FINISH_LENGTH = 3;
export const FINISH_TIMED_OUT = 4;
export const FINISH_CANCELLED = 5;

export type FinishCode = 0 | 1 | 2 | 3 | 4 | 5;
