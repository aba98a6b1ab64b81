/** True where a processor is emulated, which takes a hundred times as long: tests take fewer shapes and texts then. */
export const isShort = process.env.SKEIN_TEST_SCALE === 'short';
