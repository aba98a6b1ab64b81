import { SIDES_FLAGS } from '../compare/flags.js';

/** The model that a bench runs; see modelOf. */
export const MODEL_FLAG = { model: SIDES_FLAGS.model } as const;
export const THREADS_FLAG = { threads: SIDES_FLAGS.threads } as const;

/** Flag for the number of rounds, in which the sides of a bench take turns. */
export function roundsFlag(rounds: number) {
  return {
    rounds: {
      argument: 'N',
      default: String(rounds),
      help: `rounds in turns; medians count (default ${rounds})`,
    },
  } as const;
}

/** Flag for the length of one measurement. */
export function secondsFlag(seconds: number) {
  return {
    seconds: {
      argument: 'N',
      default: String(seconds),
      help: `seconds of each measurement (default ${seconds})`,
    },
  } as const;
}

/** The model of the command line. @throws where neither --model nor SKEIN_TEST_MODEL names one. */
export function modelOf({ model }: { model: string }): string {
  if (model === '')
    throw new Error(
      '--model: expected a folder with a model or a GGUF file, found none (SKEIN_TEST_MODEL names one too).',
    );
  return model;
}

/** A number above 0, which may have a fraction. @throws naming the flag. */
export function positiveOf(name: string, value: string): number {
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number) || number <= 0)
    throw new Error(`--${name}: expected a number above 0, found '${value}'.`);
  return number;
}
