import { describe, expect, it } from 'vitest';
import { ServerState } from '../../../src/server/server-state.js';

describe('the state of a server with several models', () => {
  it('is degraded while some of them run: one that is down takes no others with it', () => {
    const state = new ServerState(['chat', 'code']);
    expect([state.status, state.reason, state.restarts]).toEqual(['ready', null, 0]);
    state.model('code').restart('code died');
    expect([state.status, state.reason]).toEqual(['degraded', 'code died']);
    expect(state.model('chat').status).toBe('ready');
    state.model('chat').fail('chat died');
    expect([state.status, state.reason]).toEqual(['restarting', 'chat died']);
    state.model('code').fail('code died again');
    expect(state.status).toBe('failed');
    state.model('code').recover();
    expect([state.status, state.restarts]).toEqual(['degraded', 1]);
    state.drain();
    expect(state.status).toBe('draining');
  });

  it('is of the models that were named', () => {
    expect(() => new ServerState(['chat']).model('code')).toThrow("no state of a model 'code'");
  });
});
