import fc from 'fast-check';

/**
 * Property tests draw the same every time, so that a change is judged by itself: what passes for one passes for all. Other draws:
 * SKEIN_TEST_SEED=7.
 */
fc.configureGlobal({ seed: Number(process.env.SKEIN_TEST_SEED ?? 1) });
