import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { GptManager } from 'skein';
import { describe, expect, it } from 'vitest';
import { fakeEngine, supportModule } from '../../support/fake-engine.js';

describe('the worker with nothing to do', () => {
  it('sleeps at the doorbell: the loop runs once at the start and once for the shutdown', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'skein-idle-'));
    process.env.SKEIN_TEST_SEEN = join(folder, 'calls');
    const errors: string[] = [];
    const manager = new GptManager({
      ...fakeEngine('', { idlePollIntervalMs: 600_000 }),
      callbackModule: pathToFileURL(supportModule('sleepy-callbacks.mjs')),
      onError: (error) => errors.push(error.message),
    });
    await manager.ready;
    await setTimeout(100); // a loop that did not sleep would go round many thousand times
    await manager.shutdown();
    expect(Number(readFileSync(process.env.SKEIN_TEST_SEEN, 'utf8'))).toBeLessThanOrEqual(3);
    expect(manager.failure).toBeNull();
    expect(errors).toEqual([
      expect.stringMatching(/^The callback pollStopSignals failed: .*a set of ids is expected/),
    ]);
    rmSync(folder, { recursive: true });
  });
});
