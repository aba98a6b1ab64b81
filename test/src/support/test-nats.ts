import { describe } from 'vitest';
import { findNatsServer } from '../../../tools/support/queue/nats-process.js';

/** nats-server of Debian, or the program that SKEIN_TEST_NATS names; null: there is none. */
export const testNats: string | null = findNatsServer();

if (testNats === null && process.env.CI === 'true') {
  throw new Error('The tests of the work queue need nats-server (apt-get install nats-server); see .ci/run.');
}
if (testNats === null) {
  console.warn('No nats-server (apt-get install nats-server): the tests of the work queue are skipped.');
}

/** A suite that needs a NATS server. Skipped, with the line above, where there is none. */
export const describeWithNats = describe.skipIf(testNats === null);
