// The site is docs/ as it is. Links out of docs/, such as to examples, go to the
// repository. WAKEBELL_SITE_VERSION is the folder of a version, as v0.1; without it the
// site is that of the main branch.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { defineConfig } from 'vitepress'

const repository = 'https://github.com/wakebell/wakebell'
const version = process.env.WAKEBELL_SITE_VERSION ?? ''

// sections reads the sidebar from the index of the documentation.
function sections() {
  const all = []
  for (const line of readFileSync(new URL('../../docs/README.md', import.meta.url), 'utf8').split('\n')) {
    const heading = /^## (.*)$/.exec(line)
    const page = /^- \[([^\]]+)\]\(([a-z-]+(?:\/[a-z-]+)?)\.md\)/.exec(line)
    if (heading) all.push({ text: heading[1], collapsed: false, items: [] })
    if (page) all.at(-1).items.push({ text: page[1], link: `/${page[2]}` })
  }
  return all.filter((section) => section.items.length > 0)
}

// outside turns a relative link that leaves docs/ into one to the repository.
function outside(md) {
  md.core.ruler.push('outside', (state) => {
    const here = posix.dirname(posix.join('docs', state.env.relativePath ?? ''))
    for (const token of state.tokens.flatMap((t) => t.children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      if (!href || /^([a-z]+:|#|\/)/.test(href)) continue
      const [path, anchor] = href.split('#')
      const target = posix.normalize(posix.join(here, path))
      if (!target.startsWith('docs/') || target.endsWith('/')) token.attrSet('href', `${repository}/tree/${version || 'main'}/${target}${anchor ? `#${anchor}` : ''}`)
    }
  })
}

// verbatim keeps Vue from reading {{ }} in code as an expression.
function verbatim(md) {
  const inline = md.renderer.rules.code_inline
  md.renderer.rules.code_inline = (tokens, i, ...rest) => {
    tokens[i].attrSet('v-pre', '')
    return inline(tokens, i, ...rest)
  }
}

const base = version ? `/wakebell/${version}/` : '/wakebell/'
const description = 'Durable timers on actors, stored in Redis'

// plain writes the Markdown of every page beside it, and llms.txt, which names them: for
// readers that are programs.
function plain({ srcDir, outDir, pages }) {
  for (const page of pages) {
    mkdirSync(posix.dirname(join(outDir, page)), { recursive: true })
    copyFileSync(join(srcDir, page), join(outDir, page))
  }
  const list = sections().map(({ text, items }) =>
    `## ${text}\n\n${items.map((item) => `- [${item.text}](${base}${item.link.slice(1)}.md)`).join('\n')}\n`)
  writeFileSync(join(outDir, 'llms.txt'), `# Wakebell\n\n> ${description}\n\n${list.join('\n')}`)
}

export default defineConfig({
  title: version ? `Wakebell ${version}` : 'Wakebell',
  description,
  base,
  srcDir: 'content', // a copy of docs/, because packages are resolved from the folder of a page
  rewrites: { 'README.md': 'index.md' },
  cleanUrls: true,
  lastUpdated: false,
  buildEnd: plain,
  markdown: { html: false, config: (md) => { outside(md); verbatim(md) } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: sections(),
    nav: [{ text: 'A first timer', link: '/first' }, { text: 'Getting started', link: '/start' }, { text: 'Command line', link: '/cli' }, { text: 'Repository', link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path` },
  },
})
