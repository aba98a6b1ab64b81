import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  chooseTemplates,
  configuredList,
  modelTemplates,
} from '../../../models/tokenizer/named-templates.js';
import { readTokenizerFiles } from '../../../models/tokenizer/tokenizer-files.js';

const LIST = [
  { name: 'default', template: 'plain' },
  { name: 'tool_use', template: 'tools' },
];

describe('the templates of a model', () => {
  it('are those of its files, else of tokenizer_config.json, else of chat_template.json', () => {
    const configured = LIST;
    const ofProcessor = 'processor';
    expect(modelTemplates({ file: 'file', additional: { rag: 'r' }, configured, ofProcessor })).toEqual({
      chatTemplate: 'file',
      namedTemplates: { rag: 'r' },
    });
    expect(modelTemplates({ configured, ofProcessor })).toEqual({
      chatTemplate: 'plain',
      namedTemplates: { tool_use: 'tools' },
    });
    expect(modelTemplates({ configured: 'one', ofProcessor })).toEqual({ chatTemplate: 'one' });
    expect(modelTemplates({ ofProcessor })).toEqual({ chatTemplate: 'processor' });
    expect(modelTemplates({ ofProcessor: { default: 'a', rag: 'b' } })?.namedTemplates).toEqual({ rag: 'b' });
    expect(modelTemplates({})).toBe(null);
  });

  it.each([7, [{ name: 'default' }], [null], { default: 1 }])('are texts: %j', (configured) => {
    expect(() => modelTemplates({ configured })).toThrow(/should be a string or a list of named templates/);
  });

  it('are one entry of the configuration again', () => {
    const templates = modelTemplates({ configured: LIST })!;
    expect(configuredList(templates)).toEqual(LIST);
    expect(configuredList({ chatTemplate: 'one' })).toBe(null);
  });
});

describe('the chosen templates', () => {
  const templates = modelTemplates({ configured: LIST })!;
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'skein-templates-'));
    writeFileSync(join(folder, 'own.jinja'), 'own');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are default, and tool_use with functions', () => {
    expect(chooseTemplates(templates)).toEqual({ plain: 'plain', withTools: 'tools' });
    expect(chooseTemplates({ chatTemplate: 'one' })).toEqual({ plain: 'one', withTools: 'one' });
    expect(chooseTemplates({ chatTemplate: null })).toEqual({ plain: null, withTools: null });
  });

  it('are one for all where it is named', () => {
    expect(chooseTemplates(templates, 'tool_use')).toEqual({ plain: 'tools', withTools: 'tools' });
    expect(chooseTemplates(templates, 'default')).toEqual({ plain: 'plain', withTools: 'plain' });
    const file = join(folder, 'own.jinja');
    expect(chooseTemplates(templates, file)).toEqual({ plain: 'own', withTools: 'own' });
  });

  it('cannot be others', () => {
    expect(() => chooseTemplates(templates, 'rag')).toThrow(
      'chatTemplate "rag" is neither a file that can be read nor a template of the model. The model has default, tool_use.',
    );
    expect(() => chooseTemplates({ chatTemplate: null }, 'rag')).toThrow(/The model has none of its own/);
    const several = { chatTemplate: null, namedTemplates: { rag: 'r', code: 'c' } };
    expect(() => chooseTemplates(several)).toThrow(/none is called default: .*chatTemplate \(rag, code\)/);
  });

  it('are read from a folder', async () => {
    writeFileSync(join(folder, 'tokenizer.json'), '{}');
    mkdirSync(join(folder, 'additional_chat_templates'));
    writeFileSync(join(folder, 'additional_chat_templates/tool_use.jinja'), 'tools of a file');
    writeFileSync(join(folder, 'additional_chat_templates/notes.txt'), 'no template');
    writeFileSync(join(folder, 'chat_template.jinja'), 'file');
    const files = await readTokenizerFiles(folder);
    expect(chooseTemplates(files)).toEqual({ plain: 'file', withTools: 'tools of a file' });
  });
});
