import { checkConfig } from '../../../models/repository/check-config.js';
import { completeConfig } from '../../../models/repository/complete-config.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { WrittenConfig } from '../../../models/repository/written-config.js';
import { EnsembleError, type EnsemblePlan, planEnsemble } from '../../../scheduler/tensors/ensemble-plan.js';
import type { ModelRepository } from '../model-repository.js';

/** Models by name, as those that are made of others look for them. */
export type MemberDirectory = Pick<ModelRepository, 'find' | 'isReady' | 'rows'>;

/** An ensemble that fits its members as they are now. */
export interface PlannedEnsemble {
  config: ModelConfig;
  plan: EnsemblePlan;
  /** Changes with everything that the plan was made of. */
  identity: string;
}

/** A configuration is that of an ensemble. */
export function isEnsemble({ fields }: WrittenConfig): boolean {
  return fields.ensemble_scheduling !== undefined || fields.platform === 'ensemble';
}

/** Names of the members. */
export function membersOf({ fields }: WrittenConfig): string[] {
  const steps = fields.ensemble_scheduling?.step ?? [];
  return [...new Set(steps.flatMap(({ model_name: name }) => name || []))];
}

/**
 * Completes the configuration of an ensemble and holds it against its members. @param folder the name of its folder
 * @throws ModelConfigError; EnsembleError where a member is not there, or does not fit
 */
export function plannedEnsemble(
  name: string,
  folder: string,
  written: WrittenConfig,
  directory: MemberDirectory,
): PlannedEnsemble {
  const facts = { name, folder, backend: '', defaultFilename: '', told: {} };
  const config = completeConfig(written, facts);
  checkConfig(config, written);
  const steps = config.ensemble_scheduling!.step;
  for (const { model_name, model_version } of steps) checkMember(name, model_name, model_version, directory);
  const members = steps.map(
    (step) => directory.find(step.model_name, versionText(step.model_version)).config,
  );
  const plan = planEnsemble(config, members);
  const shapes = members.map(({ max_batch_size, input, output, model_transaction_policy }) => [
    max_batch_size,
    input,
    output,
    model_transaction_policy,
  ]);
  return {
    config: { ...config, model_transaction_policy: { decoupled: plan.isDecoupled } },
    plan,
    identity: JSON.stringify([config, shapes]),
  };
}

const versionText = (version: number) => (version < 0 ? '' : String(version));

/** The sentences are Triton's. @throws EnsembleError */
function checkMember(ensemble: string, member: string, version: number, directory: MemberDirectory): void {
  if (directory.isReady(member, versionText(version))) return;
  if (directory.isReady(member, '')) {
    throw new EnsembleError(
      `ensemble '${ensemble}' depends on '${member}' whose required version ${version} is not loaded.`,
    );
  }
  const rows = directory.rows().filter(({ name }) => name === member);
  const reason = rows.find((row) => row.reason)?.reason ?? '';
  if (rows.length === 0 || reason === '' || reason === 'unloaded' || reason === 'unloading') {
    throw new EnsembleError(
      `ensemble ${ensemble} contains models that are not available or ambiguous: ${member}`,
    );
  }
  throw new EnsembleError(
    `ensemble '${ensemble}' depends on '${member}' which has no loaded version. Model '${member}' loading failed with error: ${reason}`,
  );
}
