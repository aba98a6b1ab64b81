import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { listenForMcp } from '../mcp/http-service.js';
import { mcpService, type Offer } from '../mcp/mcp-service.js';
import { type AskedModel, modelTools } from '../mcp/model-tools.js';
import { checkAddress } from '../server/sockets/listen-address.js';
import { ApiKeys } from '../server/web/access/api-keys.js';
import type { RunningModel } from '../serving/running-model.js';
import type { Config } from '../settings/config.js';
import { readerGone } from '../terminal/standard-output.js';
import { InterruptedError, listenForInterruption, rejection } from './interruption.js';
import { loadConfigured } from './load-configured.js';
import { serveModels } from './open-server.js';
import { allowedHosts, readSecurity } from './server-security.js';

/** Requests at once where the options name no number: a client asks for one thing after the other, or a few. */
const FEW_REQUESTS = 4;
/** Milliseconds that an engine may take to end. */
const ENGINE_END_MS = 1_500;

/**
 * Runs skein mcp until its client has gone, or a signal has come. Clients are answered while the models load.
 * @throws UsageError, ListenError, HubError, CheckpointError, EngineError, AddonError
 */
export async function mcp(given: Config, isHttp: boolean): Promise<void> {
  const config = { ...given, maxActiveRequests: given.maxActiveRequests ?? FEW_REQUESTS };
  const interruption = listenForInterruption();
  const left = new AbortController();
  const signal = AbortSignal.any([interruption.signal, readerGone(), left.signal]);
  const loading = loadConfigured(config, signal);
  const offer = loading.then((loaded) => offerOf(loaded, config));
  offer.catch(() => {});
  try {
    const close = isHttp ? await listen(config, offer) : await talk(offer, () => left.abort());
    try {
      await Promise.race([offer, rejection(signal)]);
      await rejection(signal);
    } finally {
      await close();
    }
  } catch (error) {
    // A server that is stopped has done what it is for.
    if (
      !(signal.aborted && (left.signal.aborted || readerGone().aborted || error instanceof InterruptedError))
    )
      throw error;
  } finally {
    interruption.release();
    process.stdin.destroy();
    const loaded = await loading.catch((): RunningModel[] => []);
    await Promise.all(loaded.map((one) => one.close({ abort: true, terminateAfterMs: ENGINE_END_MS })));
  }
}

/** Talks with the one client on stdin and stdout. */
async function talk(offer: Promise<Offer>, onGone: () => void): Promise<() => Promise<void>> {
  const service = mcpService(offer);
  process.stdin.once('end', onGone);
  process.stdin.once('close', onGone);
  await service.connect(new StdioServerTransport());
  return () => service.close();
}

async function listen(config: Config, offer: Promise<Offer>): Promise<() => Promise<void>> {
  const { host, port } = config;
  const { apiKeys, corsOrigins } = readSecurity(config);
  const address = await checkAddress(host, port);
  const hosts = allowedHosts(config, apiKeys, address);
  const { url, close } = await listenForMcp({ offer, host, port, apiKeys, allowedHosts: hosts, corsOrigins });
  process.stderr.write(`skein: the tools are at ${url}\n`);
  return close;
}

/** What loaded models offer, by the server's own API, without a socket. */
function offerOf(loaded: readonly RunningModel[], config: Config): Offer {
  const entries = config.models.map((entry, i) => ({ entry, loaded: loaded[i]! }));
  const { app } = serveModels(entries, config, { apiKeys: new ApiKeys([]), corsOrigins: [] });
  const models = entries.map(({ entry: { name }, loaded: one }): AskedModel => {
    return { name, task: one.kind === 'generator' ? 'generation' : one.info.task };
  });
  return {
    tools: modelTools(models),
    post: async (path, body, signal) =>
      app.fetch(
        new Request(`http://skein${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
          signal,
        }),
      ),
  };
}
