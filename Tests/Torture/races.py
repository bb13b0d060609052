def run(section, setting):
    section.skip('not written')
