/** Most texts of a list, UTF-16 units of one, and units of all: they decide what it costs. */
export interface WordLimits {
  most: number;
  longest: number;
  units: number;
}

/** Texts that end an answer, each of which holds it back by its length. */
export const STOP_LIMITS: WordLimits = { most: 64, longest: 4096, units: 16_384 };
/** Texts that are not generated. */
export const BAD_WORD_LIMITS: WordLimits = { most: 1024, longest: 512, units: 32_768 };

/** Most answers to a prompt in one request of a protocol. */
export const MAX_CHOICES = 128;
