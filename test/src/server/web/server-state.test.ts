import { describe, expect, it } from 'vitest';
import { logEngines } from '../../../../src/server/logs/model-log.js';
import { ServerState } from '../../../../src/server/web/server-state.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { directoryOf } from '../../support/served-models.js';
import { toyModel } from '../../support/toy-server.js';

const served = (...names: string[]) =>
  directoryOf(...names.map((id) => toyModel(new FakeEngine(() => []), { id })));

describe('the state of a server with several models', () => {
  it('is degraded while some of them run: one that is down takes no others with it', () => {
    const state = new ServerState(served('chat', 'code'));
    expect([state.status, state.reason, state.restarts]).toEqual(['ready', null, 0]);
    state.model('code').restart(new Error('code died'));
    expect([state.status, state.reason]).toEqual(['degraded', 'code died']);
    expect(state.model('chat').status).toBe('ready');
    state.model('chat').fail(new Error('chat died'));
    expect([state.status, state.reason]).toEqual(['restarting', 'chat died']);
    state.model('code').fail(new Error('code died again'));
    expect(state.status).toBe('failed');
    state.model('code').recover();
    expect([state.status, state.restarts]).toEqual(['degraded', 1]);
    state.drain();
    expect(state.status).toBe('draining');
  });

  it('says which ranks a model waits for, and why the last one that came was refused', () => {
    const models = served('chat');
    const lines: string[] = [];
    const note = (_: object, line: string) => void lines.push(line);
    logEngines(models, { debug: note, info: note, warn: note, error: note });
    const state = new ServerState(models);
    const chat = state.model('chat');
    const missing = { ranks: [1, 3], address: '10.0.0.1:7000', refused: null };
    chat.restart(new Error('Rank 1 of 4 is gone.'));
    chat.noteMissing(missing);
    chat.noteMissing(missing);
    expect(state.reason).toBe('Rank 1 of 4 is gone. It is waiting for ranks 1, 3 at 10.0.0.1:7000.');
    chat.noteMissing({ ...missing, ranks: [3], refused: 'Rank 3 is of another build.' });
    const refused =
      'waiting for rank 3 at 10.0.0.1:7000. The last one that came was refused: Rank 3 is of another build.';
    expect(state.reason).toBe(`Rank 1 of 4 is gone. It is ${refused}`);
    chat.noteMissing({ ...missing, ranks: [] });
    expect(state.reason).toBe('Rank 1 of 4 is gone.');
    chat.recover();
    expect(lines).toEqual(['waiting for ranks 1, 3 at 10.0.0.1:7000.', refused, 'the engine runs again']);
  });

  it('is of the models that are served now', () => {
    const models = served('chat', 'code');
    const state = new ServerState(models);
    state.model('code').restart(new Error('code died'));
    state.model('code').recover();
    state.model('code').fail(new Error('code died again'));
    expect([state.status, state.reason, state.restarts]).toEqual(['degraded', 'code died again', 1]);
    models.remove('code');
    expect([state.status, state.reason, state.restarts]).toEqual(['ready', null, 0]);
    expect([...state.models.keys()]).toEqual(['chat']);
    models.remove('chat');
    expect([state.status, state.models.size]).toEqual(['ready', 0]);
  });

  it('is disconnected while it reaches nobody who does its work', () => {
    let why: string | null = 'the NATS server cannot be reached';
    const state = new ServerState(
      served('chat'),
      () => [],
      undefined,
      () => why,
    );
    expect([state.status, state.reason]).toEqual(['disconnected', why]);
    why = null;
    expect(state.status).toBe('loading');
    why = 'gone';
    state.drain();
    expect(state.status).toBe('draining');
  });

  it('is loading until the start is over, whatever runs already', () => {
    let starting: string[] | null = [];
    const state = new ServerState(served('chat'), () => starting);
    expect([state.status, state.reason, state.loading]).toEqual([
      'loading',
      'the model repository is being read',
      [],
    ]);
    starting = ['a'];
    expect([state.status, state.reason]).toEqual(['loading', 'the model a is being loaded']);
    starting = Array.from({ length: 12 }, (_, i) => `m${i}`);
    expect(state.reason).toMatch(/^the models m0, m1, .*m9 and 2 more are being loaded$/);
    expect(state.loading).toHaveLength(12);
    starting = null;
    expect([state.status, state.reason, state.loading]).toEqual(['ready', null, []]);
    starting = ['a'];
    state.drain();
    expect(state.status).toBe('draining');
  });

  it('is of the models that were named', () => {
    expect(() => new ServerState(served('chat')).model('code')).toThrow("no state of a model 'code'");
  });
});
