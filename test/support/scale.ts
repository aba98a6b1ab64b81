/** True where native code runs on an emulated processor or under a sanitizer, and takes ten to a hundred times as long: tests take fewer shapes and texts then. */
export const isShort = process.env.SKEIN_TEST_SCALE === 'short';

const factor = Number(process.env.SKEIN_TEST_DRAWS ?? 1);
if (!(factor > 0))
  throw new Error(`SKEIN_TEST_DRAWS is ${process.env.SKEIN_TEST_DRAWS}; a factor above 0 is expected.`);

/**
 * How often a test draws or repeats: `count` in an ordinary run, which finds what a change breaks. SKEIN_TEST_DRAWS=10 takes ten times as
 * many, for the long runs that search for what is rare.
 */
export const draws = (count: number): number => Math.ceil(count * factor);
