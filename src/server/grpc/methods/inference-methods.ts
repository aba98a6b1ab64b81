import { InferError } from '../../../../callbacks/infer/infer-error.js';
import { metadataOf, modelsCounted, statisticsOf } from '../../../serving/protocol/describe-model.js';
import { extensions } from '../../../serving/protocol/extensions.js';
import {
  noCudaMemory,
  noCudaRegion,
  noSharedMemory,
} from '../../../serving/shared-memory/no-shared-memory.js';
import { changeLogSettings, logSettings } from '../../inferring/log-settings.js';
import type { Platform } from '../../inferring/platform.js';
import { changeTraceSettings, tracedModel, traceSettings } from '../../inferring/trace-settings.js';
import type { Tracing } from '../../tracing/tracing.js';
import type { ApiKeys } from '../../web/access/api-keys.js';
import { requireAdmin } from '../../web/access/auth.js';
import type { Quotas } from '../../web/quotas/quotas.js';
import type { LogControl } from '../../web/server-log.js';
import type { ServerState } from '../../web/server-state.js';
import type { Fields, MethodTypes } from '../schema/message-types.js';
import { inferMethod } from './infer-method.js';
import { loadMethod } from './load-method.js';
import { type Method, type MethodTraits, plainMethod, textIn, versionOf } from './method.js';
import { streamInferMethod } from './stream-infer-method.js';

/** What the methods of the protocol answer from. */
export interface InferenceServices {
  platform: Platform;
  state: ServerState;
  apiKeys: ApiKeys;
  /** What is logged. */
  logControl: LogControl;
  /** Null: requests are not traced. */
  tracing: Tracing | null;
  /** Limits of the keys; absent: nothing is counted. */
  quotas?: Quotas;
  /** Of this server. */
  version: string;
  /** Most milliseconds of an answer; null: no limit. */
  timeLimitMs: number | null;
  /** Bytes of the tensors of a request. */
  maxBytes: number;
}

/** Types of a method of the protocol by its name. */
export type TypesByName = (name: string) => MethodTypes;

/** All methods of inference.GRPCInferenceService. */
export function inferenceMethods(types: TypesByName, services: InferenceServices): readonly Method[] {
  return [
    ...serverMethods(types, services),
    ...modelMethods(types, services),
    inferMethod(types('ModelInfer'), services),
    streamInferMethod(types('ModelStreamInfer'), services),
    ...repositoryMethods(types, services),
    ...memoryMethods(types, services),
    ...settingMethods(types, services),
  ];
}

const PROBE: MethodTraits = { isOpen: true, isProbe: true };

function serverMethods(types: TypesByName, { platform, state, version }: InferenceServices): Method[] {
  const isReady = () => state.status === 'ready' || state.status === 'degraded';
  return [
    plainMethod(types('ServerLive'), PROBE, () => ({ live: true })),
    plainMethod(types('ServerReady'), PROBE, () => ({ ready: isReady() })),
    plainMethod(types('ServerMetadata'), {}, () => ({
      name: platform.serverId,
      version,
      extensions: extensions(platform.sharedMemory !== null),
    })),
  ];
}

function modelMethods(types: TypesByName, { platform: { repository } }: InferenceServices): Method[] {
  const named = (fields: Fields) => [textIn(fields, 'name'), versionOf(textIn(fields, 'version'))] as const;
  return [
    plainMethod(types('ModelReady'), {}, (fields) => ({ ready: repository.isReady(...named(fields)) })),
    plainMethod(types('ModelMetadata'), {}, (fields) => {
      const [name, version] = named(fields);
      const model = repository.find(name, version);
      const versions = repository.versions(name).map((one) => one.version);
      return metadataOf(model, version === '' ? versions : [model.version]);
    }),
    plainMethod(types('ModelConfig'), {}, (fields) => ({ config: repository.find(...named(fields)).config })),
    plainMethod(types('ModelStatistics'), {}, (fields) => ({
      model_stats: modelsCounted(repository, ...named(fields)).map(statisticsOf),
    })),
  ];
}

function repositoryMethods(types: TypesByName, services: InferenceServices): Method[] {
  const { platform, apiKeys } = services;
  return [
    plainMethod(types('RepositoryIndex'), {}, async (fields) => {
      checkRepository(textIn(fields, 'repository_name'));
      return { models: await platform.repository.index({ readyOnly: fields.ready === true }) };
    }),
    loadMethod(types('RepositoryModelLoad'), services),
    plainMethod(types('RepositoryModelUnload'), { isWork: true }, async (fields, caller) => {
      requireAdmin(caller, apiKeys);
      checkRepository(textIn(fields, 'repository_name'));
      const { unload_dependents: given } = fields.parameters as Readonly<Record<string, Fields>>;
      if (given !== undefined && given.parameter_choice !== 'bool_param') {
        throw new InferError(
          "invalid value type for 'unload_dependents' parameter, expected bool_param.",
          'invalid',
        );
      }
      const unloadDependents = given?.bool_param === true;
      await platform.repository.unload(textIn(fields, 'model_name'), { unloadDependents });
      return {};
    }),
  ];
}

/** @throws InferError where a repository is named: there is one, whatever folders it has */
export function checkRepository(name: string): void {
  if (name !== '') throw new InferError("'repository_name' specification is not supported", 'unsupported');
}

function settingMethods(types: TypesByName, services: InferenceServices): Method[] {
  const { platform, apiKeys, logControl, tracing } = services;
  const decisions = tracing?.decisions ?? null;
  return [
    plainMethod(types('TraceSetting'), {}, (fields, caller) => {
      const model = tracedModel(platform.repository, textIn(fields, 'model_name'));
      const asked = settingsIn(fields, traceValue);
      const isChange = Object.keys(asked).length > 0;
      if (isChange) requireAdmin(caller, apiKeys);
      const settings = isChange
        ? changeTraceSettings(decisions, model, asked)
        : traceSettings(decisions, model);
      return {
        settings: eachOf(settings as Record<string, string | string[]>, (value) => ({
          value: typeof value === 'string' ? [value] : value,
        })),
      };
    }),
    plainMethod(types('LogSettings'), {}, (fields, caller) => {
      const asked = settingsIn(fields, (setting) => setting[setting.parameter_choice as string]);
      const isChange = Object.keys(asked).length > 0;
      if (isChange) requireAdmin(caller, apiKeys);
      const settings = isChange ? changeLogSettings(logControl, asked) : logSettings(logControl);
      return { settings: eachOf({ ...settings }, logValue) };
    }),
  ];
}

/** Settings of a request, as HTTP has them in JSON. */
function settingsIn(fields: Fields, read: (setting: Fields, name: string) => unknown): object {
  return eachOf(fields.settings as Readonly<Record<string, Fields>>, read);
}

/** A setting without a value asks for the default. Levels are a list, everything else is one text. */
function traceValue({ value }: Fields, name: string): unknown {
  const values = value as readonly string[];
  if (values.length === 0) return null;
  return values.length === 1 && name !== 'trace_level' ? values[0] : values;
}

const logValue = (value: string | number | boolean) =>
  typeof value === 'boolean'
    ? { bool_param: value }
    : typeof value === 'number'
      ? { uint32_param: value }
      : { string_param: value };

function eachOf<T, R>(
  record: Readonly<Record<string, T>>,
  make: (value: T, name: string) => R,
): Record<string, R> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, make(value, name)]));
}

/**
 * Methods of shared memory: that of the system, where clients on this machine may use it, and that of GPUs,
 * which does not exist here.
 */
function memoryMethods(types: TypesByName, { platform, apiKeys }: InferenceServices): Method[] {
  const { sharedMemory } = platform;
  return [
    plainMethod(types('SystemSharedMemoryStatus'), {}, (fields) => {
      const name = textIn(fields, 'name');
      const regions = sharedMemory?.status(name) ?? [];
      return {
        regions: Object.fromEntries(
          regions.map(({ byteSize, ...region }) => [region.name, { ...region, byte_size: byteSize }]),
        ),
      };
    }),
    plainMethod(types('SystemSharedMemoryRegister'), { isWork: true }, async (fields, caller) => {
      if (sharedMemory === null) throw noSharedMemory();
      requireAdmin(caller, apiKeys);
      await sharedMemory.register({
        name: textIn(fields, 'name'),
        key: textIn(fields, 'key'),
        offset: Number(fields.offset),
        byteSize: Number(fields.byte_size),
      });
      return {};
    }),
    plainMethod(types('SystemSharedMemoryUnregister'), {}, (fields, caller) => {
      if (sharedMemory !== null) requireAdmin(caller, apiKeys);
      sharedMemory?.unregister(textIn(fields, 'name'));
      return {};
    }),
    plainMethod(types('CudaSharedMemoryStatus'), {}, (fields) => {
      const name = textIn(fields, 'name');
      if (name !== '') throw noCudaRegion(name);
      return {};
    }),
    plainMethod(types('CudaSharedMemoryRegister'), {}, () => {
      throw noCudaMemory();
    }),
    plainMethod(types('CudaSharedMemoryUnregister'), {}, () => ({})),
  ];
}
