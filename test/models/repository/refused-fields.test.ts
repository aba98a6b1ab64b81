import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { configType } from '../../../models/repository/model-config-schema.js';
import { parseModelConfig } from '../../../models/repository/read-model-config.js';
import { REFUSED_FIELDS } from '../../../models/repository/refused-fields.js';

interface SchemaField {
  /** Fields from the configuration's root to this one. */
  path: protobuf.Field[];
  type: protobuf.Type;
}

/** All fields of the schema. What lies within a refused field is refused with it. */
function fieldsOf(type: protobuf.Type, above: protobuf.Field[] = []): SchemaField[] {
  return type.fieldsArray.flatMap((field) => {
    const path = [...above, field.resolve()];
    const { resolvedType } = field;
    const isRefused = REFUSED_FIELDS[type.name]?.[field.name] !== undefined;
    const within = resolvedType !== null && 'fields' in resolvedType && !isRefused;
    return [{ path, type }, ...(within ? fieldsOf(resolvedType, path) : [])];
  });
}

const ALL = fieldsOf(configType());
const isRefused = ({ path, type }: SchemaField) =>
  REFUSED_FIELDS[type.name]?.[path.at(-1)!.name] !== undefined;
const textOf = ({ path }: SchemaField) => path.map(({ name }) => name).join('.');

/** A value that asks for something. */
function asking({ type, resolvedType }: protobuf.Field): unknown {
  if (resolvedType !== null && 'fields' in resolvedType) {
    const [first] = resolvedType.fieldsArray;
    return { [first!.name]: whole(first!.resolve(), asking(first!)) };
  }
  if (resolvedType !== null) return Object.keys(resolvedType.values).at(-1);
  if (type === 'string') return 'x';
  return type === 'bool' ? true : 2;
}

function idle({ type, resolvedType, repeated, map }: protobuf.Field): unknown {
  if (repeated) return [];
  if (map || (resolvedType !== null && 'fields' in resolvedType)) return {};
  if (resolvedType !== null) return Object.keys((resolvedType as protobuf.Enum).values)[0];
  if (type === 'string') return '';
  return type === 'bool' ? false : 0;
}

function whole(field: protobuf.Field, value: unknown): unknown {
  if (field.map) return { k: value };
  return field.repeated ? [value] : value;
}

/** A configuration in which only this field is written. */
function configWith({ path }: SchemaField, value: (field: protobuf.Field) => unknown): string {
  const last = path.at(-1)!;
  const config = path
    .slice(0, -1)
    .reduceRight<unknown>((inner, field) => whole(field, { [nameAfter(path, field)]: inner }), value(last));
  return JSON.stringify({ [path[0]!.name]: config });
}

const nameAfter = (path: protobuf.Field[], field: protobuf.Field) => path[path.indexOf(field) + 1]!.name;

/** Statements of the rooms that use configurations, without comments, and without the schema, types, defaults and refusals. */
const NO_USE = /model-config-schema|model-config\.ts|complete-|refused-fields|read-fields|dashboard/;
const sources = ['models/repository', 'engine/backends', 'scheduler', 'src/serving', 'src/server/kserve']
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  .filter((name) => name.endsWith('.ts') && !NO_USE.test(name))
  .map((name) => readFileSync(name, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, ''))
  .join('\n');

/** Fields that nothing has to read: memory is pinned for copies to a GPU alone, and Triton's answers write `{enable: true}`. */
const WITHOUT_EFFECT = ['optimization.input_pinned_memory', 'optimization.output_pinned_memory'];

describe('a field of a configuration', () => {
  it('is refused by name, or something reads it', () => {
    const unread = ALL.filter((one) => !isRefused(one))
      .map((one) => ({ text: textOf(one), name: one.path.at(-1)!.name }))
      .filter(({ text }) => !WITHOUT_EFFECT.some((start) => text.startsWith(start)))
      .filter(({ name }) => !new RegExp(`\\b${name}\\b`).test(sources))
      .map(({ text }) => text);
    expect(unread).toEqual([]);
  });

  it.each(ALL.filter(isRefused).map((one) => [textOf(one), one] as const))(
    '%s is refused with its place, unless it asks for nothing',
    (text, one) => {
      const last = text.split('.').at(-1)!;
      const asks = configWith(one, (field) => whole(field, asking(field)));
      const reason = REFUSED_FIELDS[one.type.name]![last]!;
      expect(() => parseModelConfig(asks, 'c', 'yaml')).toThrow(`${last} ${reason}.`);
      expect(() => parseModelConfig(configWith(one, idle), 'c', 'yaml')).not.toThrow();
    },
  );

  it('has a reason only where it is in the schema', () => {
    const known = new Set(ALL.map(({ path, type }) => `${type.name}.${path.at(-1)!.name}`));
    const refused = Object.entries(REFUSED_FIELDS).flatMap(([type, fields]) =>
      Object.keys(fields).map((field) => `${type}.${field}`),
    );
    expect(refused.filter((name) => !known.has(name))).toEqual([]);
  });

  it('may have the values that Triton writes into its answers', () => {
    const text = JSON.stringify({
      batch_input: [],
      batch_output: [],
      cc_model_filenames: {},
      metric_tags: {},
      optimization: {
        priority: 'PRIORITY_DEFAULT',
        input_pinned_memory: { enable: true },
        output_pinned_memory: { enable: true },
        gather_kernel_buffer_threshold: 0,
        eager_batching: false,
      },
      instance_group: [
        {
          name: 'a',
          kind: 'KIND_CPU',
          count: 1,
          gpus: [],
          secondary_devices: [],
          profile: [],
          passive: false,
          host_policy: '',
        },
      ],
    });
    expect(() => parseModelConfig(text, 'c', 'yaml')).not.toThrow();
  });
});
