git config user.name A
git config user.email a@example.org
git config filter.lfs.clean 'git-lfs clean -- %f'
git config filter.lfs.smudge 'git-lfs smudge -- %f'
git config filter.lfs.process 'git-lfs filter-process'
git config filter.lfs.required true
git switch --quiet --create work
git gc --quiet
printf '#!/bin/sh\n' > .git/hooks/post-checkout
chmod +x .git/hooks/post-checkout
git status > /dev/null
