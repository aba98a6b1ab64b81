import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/free-port.js';
import type { OpenSide, Precision, Side } from './side.js';

/** Types of llama.cpp's weights. */
type LlamaType = 'F32' | 'Q8_0';
/** Texts that the server may compute together, and tokens of a step, as Skein's defaults are. */
const [SLOTS, STEP_TOKENS] = [64, 2048];
/** Room of a slot: one token more than the longest text, which a model that generates refuses otherwise. */
const SLOT_TOKENS = 544;
const START_MS = 60_000;

/** llama-server's /v1/embeddings over HTTP: a call's texts in one request. */
export function llamaSide(server: string, type: LlamaType, threads: number): Side {
  const precision: Precision = type === 'F32' ? 'f32' : 'int8';
  return {
    name: `llama-server ${type}`,
    precision,
    isSkein: false,
    open: (folder) => openServer(server, join(folder, `${type}.gguf`), poolingOf(folder), threads),
  };
}

function poolingOf(folder: string): string {
  const modes = JSON.parse(readFileSync(join(folder, '1_Pooling/config.json'), 'utf8'));
  return modes.pooling_mode_cls_token ? 'cls' : modes.pooling_mode_lasttoken ? 'last' : 'mean';
}

async function openServer(
  server: string,
  model: string,
  pooling: string,
  threads: number,
): Promise<OpenSide> {
  if (!existsSync(model)) throw new Error(`${basename(model)} is missing: the converter did not make it.`);
  const port = await freePort();
  const args = ['-m', model, '--embedding', '--pooling', pooling, '--host', '127.0.0.1', '--port', `${port}`];
  args.push('-t', `${threads}`, '-tb', `${threads}`, '-np', `${SLOTS}`, '-c', `${SLOTS * SLOT_TOKENS}`);
  args.push('-b', `${STEP_TOKENS}`, '-ub', `${STEP_TOKENS}`, '--no-webui');
  const child = spawn(server, args, { stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  const end = performance.now() + START_MS;
  while (!(await isHealthy(url))) {
    if (child.exitCode !== null)
      throw new Error(`llama-server cannot load it (exit status ${child.exitCode}).`);
    if (performance.now() > end) {
      await stop();
      throw new Error(`llama-server did not load it within ${START_MS / 1000} s.`);
    }
    await sleep(100);
  }
  return {
    version: 'llama-server',
    async embed(calls) {
      let first: number[] = [];
      const startMs = performance.now();
      for (const texts of calls) {
        const rows = await ask(url, texts);
        if (first.length === 0) first = rows[0]!;
      }
      return { seconds: (performance.now() - startMs) / 1000, first };
    },
    close: stop,
  };
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`)).ok;
  } catch {
    return false;
  }
}

async function ask(url: string, input: readonly string[]): Promise<number[][]> {
  const response = await fetch(`${url}/v1/embeddings`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ input }),
  });
  if (!response.ok)
    throw new Error(`llama-server answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
  const { data } = (await response.json()) as { data: { index: number; embedding: number[] }[] };
  return data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding);
}
