import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROUTERS } from '../../../tools/faults/fleet/routers.js';
import { runOptions } from '../../../tools/faults/options.js';
import { wholeRun } from '../../../tools/faults/whole-run.js';
import { routingProgram, routingPython } from '../support/routing-python.js';
import { cleanEnvironment, testCacheDir } from '../support/skein-process.js';

describe.skipIf(routingPython === null)('servers behind a router of another project', () => {
  it.each(ROUTERS.map(({ name }) => name))(
    'answer through %s while one is killed, one stopped and one cut off, once it is asked again',
    async (router) => {
      const options = runOptions({
        seed: '3',
        requests: '26',
        router,
        kills: '1',
        stops: '1',
        partitions: '1',
      });
      const report = await wholeRun(options, {
        nats: null,
        routerFolder: dirname(routingProgram(router)),
        environment: cleanEnvironment({}),
        cacheDir: testCacheDir,
      });
      expect(report).toMatchObject({ wrong: [], numMissed: 0 });
      expect(report.struck).toHaveLength(3);
    },
  );
});
