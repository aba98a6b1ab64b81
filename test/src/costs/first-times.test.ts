import { expect, it } from 'vitest';
import { firstTable, measureFirstTimes } from '../../../tools/request-costs/first-times.js';
import { DEMO_MODEL } from '../../../tools/request-costs/session.js';
import { cleanEnvironment } from '../support/skein-process.js';

it('keeps within its bounds what a server does for the first time', async () => {
  const measured = await measureFirstTimes(DEMO_MODEL, cleanEnvironment({}));
  console.log(firstTable(measured.map(({ cost }) => cost)));
  expect(measured.map(({ cost: { status, answer } }) => [status, answer])).toEqual(
    measured.map(() => [200, '']),
  );
  expect(measured.flatMap(({ cost, exceeded }) => exceeded.map((what) => `${cost.name}: ${what}`))).toEqual(
    [],
  );
});
