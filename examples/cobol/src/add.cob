*> Adds two numbers, which stand on the first two lines of standard input.
identification division.
program-id. add-numbers.

data division.
working-storage section.
01  first-text          pic x(400).
01  second-text         pic x(400).
01  first-number        pic s9(18)v9(18).
01  second-number       pic s9(18)v9(18).
01  shown               pic s9(19)v9(18).
01  first-shown         pic x(40).
01  second-shown        pic x(40).
01  sum-shown           pic x(40).
01  number-status       pic 9.
01  argument-name       pic x(20).

procedure division.
main.
    accept first-text
    accept second-text
    move "a" to argument-name
    call "parse-number" using first-text first-number number-status
    if number-status = 0
        move "b" to argument-name
        call "parse-number" using second-text second-number number-status
    end-if
    if number-status not = 0
        call "explain-number" using argument-name number-status
        stop run
    end-if
    move first-number to shown
    call "show-number" using shown first-shown
    move second-number to shown
    call "show-number" using shown second-shown
    compute shown = first-number + second-number
    call "show-number" using shown sum-shown
    display "The sum of " function trim(first-shown) " and " function trim(second-shown)
        " is " function trim(sum-shown) "."
    stop run.

end program add-numbers.
