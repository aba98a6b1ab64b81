import { isDeepStrictEqual } from 'node:util';
import type { InstanceGroup } from '../../../models/repository/model-config.js';

/** An instance of a model as its configuration has it. */
export interface NamedInstance {
  /** NAME_0, NAME_1, ... of its group. */
  readonly name: string;
  readonly group: InstanceGroup;
}

/** The instances of these groups. */
export function instancesOf(groups: readonly InstanceGroup[]): NamedInstance[] {
  return groups.flatMap((group) =>
    Array.from({ length: group.count }, (_, i) => ({ name: `${group.name}_${i}`, group })),
  );
}

/** What to do so that other groups have their instances: those that are in both stay. */
export interface InstanceChange {
  readonly added: readonly NamedInstance[];
  /** Numbers of those that go. */
  readonly removed: readonly number[];
}

/** @param present instances by their numbers */
export function changeOf(
  present: ReadonlyMap<number, NamedInstance>,
  groups: readonly InstanceGroup[],
): InstanceChange {
  const wanted = instancesOf(groups);
  const isSame = (one: NamedInstance, other: NamedInstance) =>
    one.name === other.name && isDeepStrictEqual(one.group.rate_limiter, other.group.rate_limiter);
  return {
    added: wanted.filter((one) => ![...present.values()].some((other) => isSame(one, other))),
    removed: [...present].flatMap(([index, one]) =>
      wanted.some((other) => isSame(one, other)) ? [] : [index],
    ),
  };
}
