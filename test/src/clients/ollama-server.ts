import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { demoModelPath } from '../../../src/settings/demo-model.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { FakeHub, filesOf } from '../../support/fake-hub.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';

/** Repository of the hub that stands in for the real one. */
export const HUB_ID = 'skein-tests/tiny-gguf';

export interface OllamaServer {
  server: SkeinProcess;
  stop(): Promise<void>;
}

/**
 * A server with a folder of models, one that chats and one that embeds, next to a hub with a third. @param
 * folder an empty one
 */
export async function startOllamaServer(folder: string): Promise<OllamaServer> {
  cpSync(demoModelPath()!, join(folder, 'gosling'), { recursive: true });
  cpSync(tinyModelPath('bert-mean'), join(folder, 'vectors'), { recursive: true });
  const hub = await FakeHub.start(HUB_ID, filesOf(tinyModelPath('gguf')));
  const environment = { HF_ENDPOINT: hub.endpoint, HF_TOKEN: '', HF_HUB_OFFLINE: '' };
  const flags = ['--models-dir', folder, '--kv-cache-tokens', '8192'];
  const server = await startServer(flags, environment);
  const stop = async () => {
    await server.stop();
    await hub.close();
  };
  return { server, stop };
}
