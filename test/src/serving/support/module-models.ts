import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InferRequest, InferResponse, InferTensor } from '../../../../callbacks/infer/infer-types.js';
import type { RateLimits } from '../../../../src/serving/rate-limits.js';
import type { ServingRepository } from '../../../../src/serving/repository/serving-repository.js';

/** As it was compiled: instances run in workers. */
const compiled = <Module>(path: string): Promise<Module> =>
  import(new URL(`../../../../dist/src/${path}`, import.meta.url).href);

/** A repository of folders with models in JavaScript, as a server has it. */
export class ModuleModels {
  readonly folder = mkdtempSync(join(tmpdir(), 'skein-models-'));
  readonly errors: Error[] = [];
  repository!: ServingRepository;
  limits: RateLimits | null = null;

  /** Writes a model whose configuration is YAML and whose module is `code`. */
  write(name: string, config: string, code: string, version = '1'): void {
    const directory = join(this.folder, name, version);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(this.folder, name, 'config.yaml'), `backend: module\n${config}`);
    writeFileSync(join(directory, 'model.mjs'), code);
  }

  /** Writes a model that is its configuration alone, such as an ensemble; its version is an empty folder. */
  writeConfig(name: string, config: string, version = '1'): void {
    mkdirSync(join(this.folder, name, version), { recursive: true });
    writeFileSync(join(this.folder, name, 'config.yaml'), config);
  }

  /** @param resources copies of resources by which rates are limited; null: they are not */
  async open(
    mode: 'none' | 'explicit' | 'poll' = 'explicit',
    names: string[] | null = null,
    resources: Record<string, number> | null = null,
  ): Promise<void> {
    const { modelRepository } = await compiled<typeof import('../../../../src/commands/model-repository.js')>(
      'commands/model-repository.js',
    );
    const { loadConfig } =
      await compiled<typeof import('../../../../src/settings/config.js')>('settings/config.js');
    const { LiveModels } = await compiled<typeof import('../../../../src/serving/model-directory.js')>(
      'serving/model-directory.js',
    );
    const config = loadConfig({
      flags: { modelRepository: [this.folder], modelControlMode: mode, drainTimeoutSeconds: '5' },
    });
    const log = { error: ({ err }: { err: Error }) => this.errors.push(err) };
    const describe = () => {
      throw new Error('There are no models of texts here.');
    };
    const server = { describe, log: log as never, observe: describe };
    const { RateLimits } =
      await compiled<typeof import('../../../../src/serving/rate-limits.js')>('serving/rate-limits.js');
    if (resources !== null) this.limits = new RateLimits(new Map(Object.entries(resources)));
    const { limits } = this;
    this.repository = modelRepository([], config, new LiveModels(), server, { limits });
    await this.repository.start(names);
  }

  async close(): Promise<void> {
    await this.repository?.close({ abort: true });
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** All answers to a request. Rejects with what it fails with. */
  async infer(
    model: string,
    inputs: readonly InferTensor[],
    fields: Partial<InferRequest> = {},
  ): Promise<InferResponse[]> {
    const request = {
      id: '',
      inputs,
      outputs: null,
      parameters: {},
      sequence: null,
      priority: 0,
      timeoutUs: 0,
    };
    return new Promise((resolve, reject) => {
      const responses: InferResponse[] = [];
      this.repository.find(model, '').infer(
        { ...request, ...fields },
        {
          response: (one) => {
            responses.push(one);
          },
          end: () => resolve(responses),
          fail: reject,
        },
      );
    });
  }

  /** The numbers of the output of one answer. */
  async numbers(
    model: string,
    rows: readonly (readonly number[])[],
    fields: Partial<InferRequest> = {},
  ): Promise<number[]> {
    const [response] = await this.infer(model, [int32('X', rows)], fields);
    return numbersOf(response!.outputs[0]!);
  }
}

export function int32(name: string, rows: readonly (readonly number[])[]): InferTensor {
  const data = new Uint8Array(Int32Array.from(rows.flat()).buffer);
  return { name, datatype: 'INT32', shape: [rows.length, rows[0]!.length], data };
}

export function numbersOf({ data }: InferTensor): number[] {
  return [...new Int32Array(data.slice().buffer)];
}
