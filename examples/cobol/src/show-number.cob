*> Writes a number without leading and trailing zeros.
identification division.
program-id. show-number.

data division.
working-storage section.
01  edited              pic -(19)9.9(18).
01  last-at             pic 9(4) comp-5.

linkage section.
01  number-value        pic s9(19)v9(18).
01  number-text         pic x(40).

procedure division using number-value number-text.
main.
    move number-value to edited
    move function trim(edited) to number-text
    compute last-at = function length(function trim(number-text))
    perform until number-text(last-at:1) not = "0"
        move space to number-text(last-at:1)
        subtract 1 from last-at
    end-perform
    if number-text(last-at:1) = "."
        move space to number-text(last-at:1)
    end-if
    goback.

end program show-number.
