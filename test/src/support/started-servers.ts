import { afterEach } from 'vitest';
import type { SkeinProcess } from './skein-process.js';

/**
 * Returns a function that waits for a server and kills it after the test that started it, so that none outlives a test
 * that fails. It registers a hook: call it at the top of a file, or of a `describe`.
 */
export function startedServers(): (server: Promise<SkeinProcess>) => Promise<SkeinProcess> {
  const servers: SkeinProcess[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.child.kill('SIGKILL');
  });
  return async (server) => {
    servers.push(await server);
    return server;
  };
}
